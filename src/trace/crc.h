/*
 * crc - CRC32C, the checksum of every part of a report.
 *
 * Uses the CPU's instruction where there is one (about 20 GB/s), else a table (about 0.4 GB/s).
 */
#ifndef LULL_TRACE_CRC_H
#define LULL_TRACE_CRC_H

#include "base/types.h"

/* CRC32C of `len` bytes that follow bytes whose CRC is `crc`; begin with 0. */
u32 lull_crc32c(u32 crc, const void *bytes, size_t len);

/* The same by the table, for machines without the instruction and for the test that compares both.
 */
u32 lull_crc32c_table(u32 crc, const void *bytes, size_t len);

#endif
