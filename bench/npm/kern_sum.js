// The report cuda_gpu_kern_sum by DuckDB on one thread, over a folder that `lull export -t parquet` made.
//
//	node kern_sum.js FOLDER
//
// Prints "name value unit": the best of five, from the query to all of its rows, without the start of the program. The
// last line holds what it counted, kernels and nanoseconds.
import { DuckDBInstance } from '@duckdb/node-api'

const table = `'${process.argv[2]}/kernel.parquet'`
const sum = `SELECT launch_name, count(*), sum(dur_ns) AS total, avg(dur_ns), median(dur_ns), min(dur_ns), max(dur_ns),
  stddev_samp(dur_ns) FROM ${table} GROUP BY launch_name ORDER BY total DESC`
const plain = `SELECT launch_name, sum(dur_ns) AS total FROM ${table} GROUP BY launch_name ORDER BY total DESC`

const db = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect()

async function best(sql) {
  let least = Infinity
  for (let i = 0; i < 5; i++) {
    const begin = process.hrtime.bigint()
    const rows = (await db.runAndReadAll(sql)).getRows()
    if (!rows.length) throw new Error('no kernels')
    least = Math.min(least, Number(process.hrtime.bigint() - begin) / 1e6)
  }
  return least.toFixed(1)
}

console.log(`duckdb_kern_sum ${await best(sum)} ms`)
console.log(`duckdb_kern_total ${await best(plain)} ms`)
const [[n, ns]] = (await db.runAndReadAll(`SELECT count(*), sum(dur_ns) FROM ${table}`)).getRows()
console.log(`# counted ${n} ${ns}`)
