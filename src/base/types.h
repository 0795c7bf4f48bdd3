/*
 * types - the short integer names used everywhere, and nothing else.
 */
#ifndef LULL_BASE_TYPES_H
#define LULL_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
typedef double f64;

#define LULL_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
