/*
 * file_frame - what surrounds the blocks of a report: header, index, trailer.
 *
 *	header 64 B | block | block | ... | index block | trailer 64 B
 *
 * Nothing is ever rewritten. A file is sealed if and only if a valid trailer ends it.
 *
 *	header   0  8      "LULLFILE"
 *	         8  2+2    format major, minor
 *	        12  2      lowest format that can read it, major << 8 | minor
 *	        14  2      flags (LULL_FILE_*)
 *	        16  4      0x01020304
 *	        20  4      clock: 1 CLOCK_MONOTONIC, 2 as imported
 *	        24  8      epoch: clock value that is time 0 of the file, ns
 *	        32  8      UTC ns at the epoch
 *	        40  16     random id of the recording
 *	        56  4      0
 *	        60  4      CRC32C of bytes 0-59
 *
 *	index    0  8      offset of the block
 *	entry    8  8+8+8  smallest start, largest end, largest start, as in its head
 *	        32  8      lanes
 *	        40  4+4    rows, bytes
 *	        48  2+1+1  table id, kind, flags
 *	        52  4+4    sequence number, first id
 *	        60  4      0
 *
 *	trailer  0  8      "LULLSEAL"
 *	         8  8+8    offset and bytes of the index block
 *	        24  8      number of blocks
 *	        32  8      length of the file
 *	        40  4      CRC32C of the index block
 *	        44  2      format
 *	        46  14     0
 *	        60  4      CRC32C of bytes 0-59
 *
 * What it gives:  these parts as structs and bytes; no I/O.
 * What it checks: magic, CRC, versions, lengths. Offsets of blocks are checked when they are used.
 */
#ifndef LULL_TRACE_FILE_FRAME_H
#define LULL_TRACE_FILE_FRAME_H

#include "base/err.h"
#include "base/types.h"
#include "trace/block.h"
#include "trace/writer.h"

#define LULL_FORMAT_MAJOR 1u
#define LULL_FORMAT_MINOR 0u
#define LULL_FORMAT	  (LULL_FORMAT_MAJOR << 8 | LULL_FORMAT_MINOR)

#define LULL_HEADER_BYTES      64u
#define LULL_TRAILER_BYTES     64u
#define LULL_INDEX_ENTRY_BYTES 64u

/* One block, as the index and the walk know it. */
struct lull_entry {
	u64 off;
	u64 min_start;
	u64 max_end;
	u64 max_start;
	u64 lanes;
	u32 n_rows;
	u32 size_bytes;
	u16 table_id;
	u8 kind;
	u8 flags;
	u32 seq;
	u32 first_id;
};

struct lull_trailer {
	u64 index_off;
	u64 index_bytes;
	u64 n_blocks;
	u32 index_crc;
};

/* Write the header of a file. */
void lull_file_put_header(u8 at[LULL_HEADER_BYTES], const struct lull_file_info *info);

/* Read a header; LULL_E_FORMAT if it is not one, LULL_E_UNSUPPORTED if a later version is needed.
 * *format receives major << 8 | minor. */
int lull_file_get_header(const u8 at[LULL_HEADER_BYTES], struct lull_file_info *info, u16 *format,
			 struct lull_err *err);

/* The entry of a block that lies at `off`. */
struct lull_entry lull_file_entry(const struct lull_block_head *h, u64 off);

/* Write one entry of the index. */
void lull_file_put_entry(u8 at[LULL_INDEX_ENTRY_BYTES], const struct lull_entry *e);

/* Read one entry of the index; false if a value is out of range. */
bool lull_file_get_entry(const u8 at[LULL_INDEX_ENTRY_BYTES], struct lull_entry *e);

/* Order of the index: by table, then smallest start, then sequence. For lull_sort(). */
int lull_file_compare_entries(const void *a, const void *b);

/* Bytes of an index block and trailer for n blocks. */
size_t lull_file_index_bytes(size_t n);

/* Write index block and trailer to `out`; they will lie at `off`. `entries` are sorted in place. */
void lull_file_put_index(u8 *out, struct lull_entry *entries, size_t n, u64 off, u32 seq);

/* Read the trailer of a file of this length; false if it is not a valid one. */
bool lull_file_get_trailer(const u8 at[LULL_TRAILER_BYTES], u64 file_bytes, struct lull_trailer *t);

/* True if `at` (t->index_bytes of it) is the index block that this trailer seals. */
bool lull_file_index_is_whole(const u8 *at, const struct lull_trailer *t);

#endif
