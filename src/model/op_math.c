#include "model/op_math.h"

#include <string.h>

#define MAX_INPUTS 16
#define MAX_DIMS   8

struct shape {
	int n_dims; /* -1: a list of tensors, or more dimensions than anybody has */
	f64 dims[MAX_DIMS];
};

struct shapes {
	int n;
	struct shape at[MAX_INPUTS];
};

static const char *take_number(const char *p, f64 *value)
{
	*value = 0;
	for (; *p >= '0' && *p <= '9'; p++)
		*value = *value * 10 + (*p - '0');
	return p;
}

static void add_dim(struct shapes *s, int depth, f64 value)
{
	struct shape *shape = &s->at[s->n - 1];

	if (depth == 2 && shape->n_dims >= 0 && shape->n_dims < MAX_DIMS)
		shape->dims[shape->n_dims++] = value;
	else
		shape->n_dims = -1;
}

/* Each element of the outer array is an input; false if there are none or too many. */
static bool take_shapes(const char *text, struct shapes *s)
{
	int depth = 0;

	s->n = 0;
	for (const char *p = text; *p;) {
		f64 value;

		if (*p == '[') {
			if (++depth == 2) {
				if (s->n == MAX_INPUTS)
					return false;
				s->at[s->n++].n_dims = 0;
			} else if (depth > 2 && s->n) {
				s->at[s->n - 1].n_dims = -1;
			}
			p++;
		} else if (*p == ']') {
			depth--;
			p++;
		} else if (*p >= '0' && *p <= '9') {
			p = take_number(p, &value);
			if (depth >= 2 && s->n)
				add_dim(s, depth, value);
		} else {
			p++;
		}
	}
	return s->n > 0;
}

static f64 n_elements(const struct shape *shape)
{
	f64 n = 1;

	if (shape->n_dims < 0)
		return 0;
	for (int i = 0; i < shape->n_dims; i++)
		n *= shape->dims[i];
	return n;
}

/* ---- bytes ---- */

static unsigned bytes_of_type(const char *type, size_t len)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {
		{ "float", 4 },
		{ "double", 8 },
		{ "c10::Half", 2 },
		{ "c10::BFloat16", 2 },
		{ "long int", 8 },
		{ "long", 8 },
		{ "int", 4 },
		{ "short int", 2 },
		{ "short", 2 },
		{ "signed char", 1 },
		{ "char", 1 },
		{ "unsigned char", 1 },
		{ "bool", 1 },
		{ "c10::complex<float>", 8 },
		{ "c10::complex<double>", 16 },
		{ "c10::Float8_e4m3fn", 1 },
		{ "c10::Float8_e5m2", 1 },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(types); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, type, len))
			return types[i].bytes;
	return 0;
}

u64 lull_op_input_bytes(const char *shapes, const char *types)
{
	struct shapes s;
	f64 sum = 0;

	if (!take_shapes(shapes, &s))
		return 0;
	for (int i = 0; i < s.n; i++) {
		const char *begin = strchr(types, '"');
		const char *end = begin ? strchr(begin + 1, '"') : NULL;

		if (!end)
			break;
		sum += n_elements(&s.at[i]) * bytes_of_type(begin + 1, (size_t)(end - begin - 1));
		types = end + 1;
	}
	return sum < 1e19 ? (u64)sum : 0;
}

/* ---- arithmetic ---- */

/* Of a product of two matrices, or of batches of them: inputs `a` and `b`. */
static f64 of_product(const struct shapes *s, int a, int b, int n_dims)
{
	const struct shape *x = &s->at[a], *y = &s->at[b];

	if (s->n <= b || x->n_dims != n_dims || y->n_dims != n_dims)
		return 0;
	return 2 * n_elements(x) * y->dims[n_dims - 1];
}

/* The `n` numbers of the input `ix`, such as a stride "[1, 1]"; a single one stands for all. */
static bool take_inputs(const char *inputs, int ix, f64 *values, int n)
{
	const char *p = inputs, *end;
	int found = 0;

	for (int i = 0;; i++) {
		p = strchr(p, '"');
		end = p ? strchr(p + 1, '"') : NULL;
		if (!end)
			return false;
		if (i == ix)
			break;
		p = end + 1;
	}
	for (p++; p < end && found < n;) {
		if (*p >= '0' && *p <= '9')
			p = take_number(p, &values[found++]);
		else
			p++;
	}
	for (int i = 1; found == 1 && i < n; i++)
		values[i] = values[0];
	return found > 0;
}

/* aten::conv2d(input, weight, bias, stride, padding, dilation, groups) */
static f64 of_conv2d(const struct shapes *s, const char *inputs)
{
	const struct shape *in = &s->at[0], *weight = &s->at[1];
	f64 stride[2], padding[2], dilation[2], flops = 2;

	if (s->n < 2 || in->n_dims != 4 || weight->n_dims != 4 ||
	    !take_inputs(inputs, 3, stride, 2) || !take_inputs(inputs, 4, padding, 2) ||
	    !take_inputs(inputs, 5, dilation, 2))
		return 0;
	for (int i = 0; i < 2; i++) {
		f64 room = in->dims[2 + i] + 2 * padding[i] -
			   dilation[i] * (weight->dims[2 + i] - 1) - 1;

		if (stride[i] <= 0 || room < 0)
			return 0;
		flops *= (f64)(u64)(room / stride[i]) + 1;
	}
	return flops * in->dims[0] * n_elements(weight);
}

f64 lull_op_flops(const char *name, const char *shapes, const char *inputs)
{
	struct shapes s;

	if (strncmp(name, "aten::", 6) || !take_shapes(shapes, &s))
		return 0;
	name += 6;
	if (!strcmp(name, "mm"))
		return of_product(&s, 0, 1, 2);
	if (!strcmp(name, "addmm"))
		return of_product(&s, 1, 2, 2);
	if (!strcmp(name, "bmm"))
		return of_product(&s, 0, 1, 3);
	if (!strcmp(name, "baddbmm"))
		return of_product(&s, 1, 2, 3);
	if (!strcmp(name, "conv2d"))
		return of_conv2d(&s, inputs);
	if (!strcmp(name, "add") || !strcmp(name, "mul"))
		return n_elements(&s.at[0]);
	return 0;
}
