// Print the rows of Parquet files as hyparquet reads them.
//
//	node parquet_rows.js FILE...		JSON lines: {"file":...,"row":{...}}
//	node parquet_rows.js --csv=A,B FILE	these columns as CSV; the last line is JSON and compares, for each row
//						group, what the footer says of a column with what is in it:
//						[{"A":{"said":[MIN,MAX],"is":[MIN,MAX]},...},...]
import { writeSync } from 'node:fs'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

// Numbers beyond 2^53 are bigints, and stay whole as strings; bytes become hex.
const plain = (_, v) =>
  typeof v === 'bigint' ? v.toString() : v instanceof Uint8Array ? Buffer.from(v).toString('hex') : v

function print(lines) {
  const bytes = Buffer.from(lines.join('\n') + '\n')
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes, at)
}

async function printJson(path) {
  const file = await asyncBufferFromFile(path)
  const rows = await parquetReadObjects({ file, compressors, utf8: false })
  print(rows.map(row => JSON.stringify({ file: path, row }, plain)))
}

async function printCsv(path, columns) {
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const groups = []
  let rowStart = 0
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows)
    const rows = await parquetReadObjects({ file, metadata, columns, compressors, rowStart, rowEnd })
    print(rows.map(row => columns.map(c => row[c]).join(',')))
    groups.push(Object.fromEntries(columns.map(c => {
      const { statistics } = group.columns.find(({ meta_data: m }) => m.path_in_schema[0] === c).meta_data
      let [min, max] = [rows[0][c], rows[0][c]]
      for (const row of rows) [min, max] = [row[c] < min ? row[c] : min, row[c] > max ? row[c] : max]
      return [c, { said: [statistics.min_value, statistics.max_value], is: [min, max] }]
    })))
    rowStart = rowEnd
  }
  print([JSON.stringify(groups, plain)])
}

const [first, ...rest] = process.argv.slice(2)
if (first.startsWith('--csv=')) await printCsv(rest[0], first.slice(6).split(','))
else for (const path of [first, ...rest]) await printJson(path)
