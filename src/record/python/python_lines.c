#include "record/python/python_int.h"

/*
 * Line tables, oldest first; offsets are in bytes of the bytecode.
 *
 *	3.9    co_lnotab      pairs (u8 bytes, i8 lines): the lines are added once the offset is
 *	                      past the bytes
 *	3.10   co_linetable   pairs (u8 bytes, i8 lines): the lines are added and then hold for the
 *	                      bytes; -128: these have no line (PEP 626, Objects/lnotab_notes.txt)
 *	3.11+  co_linetable   entries of variable length (Objects/locations.md): a first byte
 *	                      1 kkkk nnn of kind and length - 1 in units of two bytes; then, by
 *	                      kind, columns and differences of lines
 */

static u32 line_in_lnotab(const struct lull_python_code *code, i64 off)
{
	i64 line = code->first_line, at = 0;

	for (size_t i = 0; i + 1 < code->n_lines_bytes; i += 2) {
		at += code->lines[i];
		if (at > off)
			break;
		line += (signed char)code->lines[i + 1];
	}
	return line > 0 ? (u32)line : 0;
}

#define NO_LINE -128

static u32 line_in_ranges(const struct lull_python_code *code, i64 off)
{
	i64 line = code->first_line, end = 0;

	for (size_t i = 0; i + 1 < code->n_lines_bytes; i += 2) {
		int delta = code->lines[i + 1];

		delta -= delta < 128 ? 0 : 256; /* a signed byte */
		end += code->lines[i];
		if (delta != NO_LINE)
			line += delta;
		if (off < end)
			return delta != NO_LINE && line > 0 ? (u32)line : 0;
	}
	return 0;
}

/* Kinds of an entry of the location table; below ONE_LINE_FIRST the line does not change. */
enum {
	KIND_ONE_LINE_FIRST = 10,
	KIND_ONE_LINE_LAST = 12,
	KIND_NO_COLUMNS = 13,
	KIND_LONG = 14,
	KIND_NONE = 15,
};

/* Six bits a byte, lowest first, 0x40 = more follow; the lowest bit of the result is the sign. */
static i64 signed_varint(const u8 *at, const u8 *end)
{
	u64 v = 0;
	u32 shift = 0;

	while (at < end && shift < 32) {
		v |= (u64)(*at & 0x3f) << shift;
		if (!(*at++ & 0x40))
			break;
		shift += 6;
	}
	return v & 1 ? -(i64)(v >> 1) : (i64)(v >> 1);
}

static u32 line_in_locations(const struct lull_python_code *code, i64 off)
{
	const u8 *at = code->lines, *end;
	i64 line = code->first_line, until = 0;

	if (!at)
		return 0;
	end = at + code->n_lines_bytes;
	while (at < end) {
		u32 kind = *at >> 3 & 15;

		until += 2 * ((*at & 7) + 1);
		if (kind >= KIND_ONE_LINE_FIRST && kind <= KIND_ONE_LINE_LAST)
			line += kind - KIND_ONE_LINE_FIRST;
		else if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
			line += signed_varint(at + 1, end);
		if (off < until)
			return kind != KIND_NONE && line > 0 ? (u32)line : 0;
		/* Only the first byte of an entry has its top bit set. */
		do
			at++;
		while (at < end && !(*at & 0x80));
	}
	return 0;
}

u32 lull_python_line(u32 minor, const struct lull_python_code *code, i64 off)
{
	/* Not begun yet: it will begin on its first line. */
	if (off < 0)
		return code->first_line;
	if (minor <= 9)
		return line_in_lnotab(code, off);
	if (minor == 10)
		return line_in_ranges(code, off);
	return line_in_locations(code, off);
}
