#include "model/op_math.h"

#include <math.h>
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

/* A product as aten::matmul takes it: vectors, matrices, and batches of them that fit together. */
static f64 of_matmul(const struct shapes *s)
{
	const struct shape *x = &s->at[0], *y = &s->at[1];
	f64 flops = 2, n = 1;

	if (s->n < 2 || x->n_dims < 1 || y->n_dims < 1)
		return 0;
	for (int i = 2; i < x->n_dims || i < y->n_dims; i++) {
		f64 of_x = i < x->n_dims ? x->dims[x->n_dims - 1 - i] : 1;
		f64 of_y = i < y->n_dims ? y->dims[y->n_dims - 1 - i] : 1;

		flops *= of_x > of_y ? of_x : of_y;
	}
	if (x->n_dims > 1)
		flops *= x->dims[x->n_dims - 2];
	if (y->n_dims > 1)
		n = y->dims[y->n_dims - 1];
	return flops * x->dims[x->n_dims - 1] * n;
}

/* aten::linear(input, weight, bias): each row of the input meets each row of the weight. */
static f64 of_linear(const struct shapes *s)
{
	const struct shape *x = &s->at[0], *weight = &s->at[1];

	if (s->n < 2 || x->n_dims < 1 || weight->n_dims < 1)
		return 0;
	return 2 * n_elements(x) * (weight->n_dims > 1 ? weight->dims[0] : 1);
}

/* ---- attention ---- */

/*
 * Queries, keys and values are the inputs from `first` on, (batch, heads, length, size), or with
 * length before heads. Two products forward; backward five, as the scores are computed again.
 */
static f64 of_attention(const struct shapes *s, int first, int length_dim, bool is_backward)
{
	const struct shape *q = &s->at[first], *k = q + 1, *v = q + 2;
	f64 scores;

	if (s->n < first + 3 || q->n_dims != 4 || k->n_dims != 4 || v->n_dims != 4)
		return 0;
	scores = 2 * q->dims[0] * q->dims[1] * q->dims[2] * k->dims[length_dim];
	return scores * (is_backward ? 3 * q->dims[3] + 2 * v->dims[3] : q->dims[3] + v->dims[3]);
}

/* ---- convolutions ---- */

/* The text of the input `ix`; *len is 0 if there is none. */
static const char *input_text(const char *inputs, int ix, size_t *len)
{
	const char *p = inputs, *end;

	*len = 0;
	for (int i = 0;; i++) {
		p = strchr(p, '"');
		end = p ? strchr(p + 1, '"') : NULL;
		if (!end)
			return "";
		if (i == ix)
			break;
		p = end + 1;
	}
	*len = (size_t)(end - p - 1);
	return p + 1;
}

/* The `n` numbers of the input `ix`, such as a stride "[1, 1]"; a single one stands for all. */
static bool take_inputs(const char *inputs, int ix, f64 *values, int n)
{
	size_t len;
	const char *p = input_text(inputs, ix, &len), *end = p + len;
	int found = 0;

	while (p < end && found < n) {
		if (*p >= '0' && *p <= '9')
			p = take_number(p, &values[found++]);
		else
			p++;
	}
	for (int i = 1; found == 1 && i < n; i++)
		values[i] = values[0];
	return found > 0;
}

static bool is_true(const char *text, size_t len)
{
	return len && (*text == 'T' || *text == 't' || *text == '1');
}

/* Where a convolution has what, by number of the input; -1 for what it has not. */
struct conv {
	const char *name;
	int in, weight, stride, padding, dilation, transposed;
	int out;  /* gradient of its output: then it is the backward of one */
	int mask; /* which gradients are wanted */
	bool is_transposed;
};

static const struct conv convs[] = {
	{ "conv1d", 0, 1, 3, 4, 5, -1, -1, -1, false },
	{ "conv2d", 0, 1, 3, 4, 5, -1, -1, -1, false },
	{ "conv3d", 0, 1, 3, 4, 5, -1, -1, -1, false },
	{ "conv_transpose1d", 0, 1, -1, -1, -1, -1, -1, -1, true },
	{ "conv_transpose2d", 0, 1, -1, -1, -1, -1, -1, -1, true },
	{ "conv_transpose3d", 0, 1, -1, -1, -1, -1, -1, -1, true },
	{ "convolution", 0, 1, 3, 4, 5, 6, -1, -1, false },
	{ "_convolution", 0, 1, 3, 4, 5, 6, -1, -1, false },
	{ "cudnn_convolution", 0, 1, 3, 2, 4, -1, -1, -1, false },
	{ "cudnn_convolution_transpose", 0, 1, -1, -1, -1, -1, -1, -1, true },
	{ "mkldnn_convolution", 0, 1, 4, 3, 5, -1, -1, -1, false },
	{ "convolution_backward", 1, 2, -1, -1, -1, 7, 0, 10, false },
};

/* How many places a filter is put to; 0 if that is not known. */
static f64 n_places(const struct conv *c, const struct shapes *s, const char *inputs)
{
	const struct shape *in = &s->at[c->in], *weight = &s->at[c->weight];
	f64 stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS], places = 1;
	int n = in->n_dims - 2;

	if (!take_inputs(inputs, c->stride, stride, n) ||
	    !take_inputs(inputs, c->padding, padding, n) ||
	    !take_inputs(inputs, c->dilation, dilation, n))
		return 0;
	for (int i = 0; i < n; i++) {
		f64 room = in->dims[2 + i] + 2 * padding[i] -
			   dilation[i] * (weight->dims[2 + i] - 1) - 1;

		if (stride[i] <= 0 || room < 0)
			return 0;
		places *= floor(room / stride[i]) + 1;
	}
	return places;
}

/* Gradients of input and weight that are wanted, both where it is not said. */
static int n_gradients(const struct conv *c, const char *inputs)
{
	size_t len;
	const char *mask = input_text(inputs, c->mask, &len), *end = mask + len;
	int n = 0;

	if (!len || *mask != '[')
		return 2;
	for (int i = 0; i < 2 && mask < end; i++) {
		mask += 1 + strspn(mask + 1, " ");
		n += is_true(mask, (size_t)(end - mask));
		mask += strcspn(mask, ",]");
	}
	return n;
}

/* Two for each weight at each place, forward and for each gradient. */
static f64 of_conv(const struct conv *c, const struct shapes *s, const char *inputs)
{
	const struct shape *in = &s->at[c->in], *weight = &s->at[c->weight];
	const struct shape *places_of = in;
	bool is_transposed = c->is_transposed;
	size_t len;

	if (s->n <= c->weight || in->n_dims < 3 || in->n_dims != weight->n_dims)
		return 0;
	if (c->transposed >= 0) {
		const char *text = input_text(inputs, c->transposed, &len);

		is_transposed = is_true(text, len);
	}
	if (!is_transposed && c->out < 0)
		return 2 * n_places(c, s, inputs) * in->dims[0] * n_elements(weight);
	/* A transposed one puts filters where its input is, a backward one where its output is. */
	if (c->out >= 0 && !is_transposed)
		places_of = &s->at[c->out];
	if (places_of->n_dims != weight->n_dims || places_of->dims[1] <= 0)
		return 0;
	return 2 * n_elements(places_of) / places_of->dims[1] * n_elements(weight) *
	       (c->out >= 0 ? n_gradients(c, inputs) : 1);
}

/* ---- by name ---- */

struct product {
	const char *name;
	int a, b, n_dims;
};

static const struct product products[] = {
	{ "mm", 0, 1, 2 },
	{ "addmm", 1, 2, 2 },
	{ "bmm", 0, 1, 3 },
	{ "baddbmm", 1, 2, 3 },
};

struct attention {
	const char *name;
	int first, length_dim;
	bool is_backward;
};

static const struct attention attentions[] = {
	{ "scaled_dot_product_attention", 0, 2, false },
	{ "_scaled_dot_product_flash_attention", 0, 2, false },
	{ "_scaled_dot_product_efficient_attention", 0, 2, false },
	{ "_scaled_dot_product_cudnn_attention", 0, 2, false },
	{ "_scaled_dot_product_attention_math", 0, 2, false },
	{ "_scaled_dot_product_flash_attention_for_cpu", 0, 2, false },
	{ "_flash_attention_forward", 0, 1, false },
	{ "_efficient_attention_forward", 0, 1, false },
	{ "_cudnn_attention_forward", 0, 2, false },
	{ "_scaled_dot_product_flash_attention_backward", 1, 2, true },
	{ "_scaled_dot_product_efficient_attention_backward", 1, 2, true },
	{ "_scaled_dot_product_cudnn_attention_backward", 1, 2, true },
	{ "_scaled_dot_product_flash_attention_for_cpu_backward", 1, 2, true },
	{ "_flash_attention_backward", 1, 1, true },
	{ "_efficient_attention_backward", 1, 1, true },
};

f64 lull_op_flops(const char *name, const char *shapes, const char *inputs)
{
	struct shapes s;

	if (strncmp(name, "aten::", 6) || !take_shapes(shapes, &s))
		return 0;
	name += 6;
	for (size_t i = 0; i < LULL_COUNT_OF(products); i++)
		if (!strcmp(name, products[i].name))
			return of_product(&s, products[i].a, products[i].b, products[i].n_dims);
	for (size_t i = 0; i < LULL_COUNT_OF(convs); i++)
		if (!strcmp(name, convs[i].name))
			return of_conv(&convs[i], &s, inputs);
	for (size_t i = 0; i < LULL_COUNT_OF(attentions); i++)
		if (!strcmp(name, attentions[i].name))
			return of_attention(&s, attentions[i].first, attentions[i].length_dim,
					    attentions[i].is_backward);
	if (!strcmp(name, "matmul"))
		return of_matmul(&s);
	if (!strcmp(name, "linear"))
		return of_linear(&s);
	if (!strcmp(name, "add") || !strcmp(name, "mul"))
		return n_elements(&s.at[0]);
	return 0;
}
