/*
 * proto - the wire format of Protocol Buffers: the part that an encoder needs.
 *
 * Fields are appended at a pointer that moves forward. Nested messages are written to a separate
 * buffer first, because their length comes before them; or lull_proto_open() reserves space for a
 * length of up to 2 MiB and lull_proto_close() fills it in, with a varint that is not the shortest,
 * which every reader accepts.
 *
 * The caller has reserved space: LULL_PROTO_FIELD bytes for each field, and the length of its text.
 */
#ifndef LULL_EXPORT_PROTO_H
#define LULL_EXPORT_PROTO_H

#include <string.h>

#include "base/bytes.h"
#include "base/types.h"
#include "base/varint.h"

#define LULL_PROTO_FIELD 20u /* most that a number with its tag takes */

enum lull_proto_type {
	LULL_PROTO_VARINT = 0,
	LULL_PROTO_FIXED64 = 1,
	LULL_PROTO_BYTES = 2,
};

/* A number, seven bits a byte. */
static inline u8 *lull_proto_varint(u8 *at, u64 v)
{
	return at + lull_varint_put(at, v);
}

/* Number and type of a field. */
static inline u8 *lull_proto_tag(u8 *at, u32 field, enum lull_proto_type type)
{
	return lull_proto_varint(at, (u64)field << 3 | type);
}

/* A field of type uint32, uint64, int64, bool or enum. */
static inline u8 *lull_proto_u64(u8 *at, u32 field, u64 v)
{
	return lull_proto_varint(lull_proto_tag(at, field, LULL_PROTO_VARINT), v);
}

/* A field of type fixed64. */
static inline u8 *lull_proto_fixed64(u8 *at, u32 field, u64 v)
{
	at = lull_proto_tag(at, field, LULL_PROTO_FIXED64);
	lull_put_u64(at, v);
	return at + 8;
}

/* A field of type double. */
static inline u8 *lull_proto_f64(u8 *at, u32 field, f64 v)
{
	u64 bits;

	memcpy(&bits, &v, sizeof(bits));
	return lull_proto_fixed64(at, field, bits);
}

/* A field of type string or bytes, or a message that was encoded before. */
static inline u8 *lull_proto_bytes(u8 *at, u32 field, const void *bytes, size_t len)
{
	at = lull_proto_varint(lull_proto_tag(at, field, LULL_PROTO_BYTES), len);
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

#define LULL_PROTO_LEN 3u /* bytes of a length that is filled in later */

/* Start a nested message; what follows goes after the returned place. */
static inline u8 *lull_proto_open(u8 *at, u32 field)
{
	return lull_proto_tag(at, field, LULL_PROTO_BYTES) + LULL_PROTO_LEN;
}

/* End the message that began at `begin`, as lull_proto_open() returned it. */
static inline void lull_proto_close(u8 *begin, const u8 *at)
{
	size_t len = (size_t)(at - begin);

	begin[-3] = (u8)(len | 0x80);
	begin[-2] = (u8)(len >> 7 | 0x80);
	begin[-1] = (u8)(len >> 14 & 0x7f);
}

#endif
