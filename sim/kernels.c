#include "cuda_int.h"

#include <string.h>

/*
 * What kernels of these names compute, for examples whose numbers should be right. Parameters are
 * those of the kernels in examples/train_cuda.c. Sums are made in the order in which a thread of
 * the device makes them, and nothing is fused, so that the device gives the same bits.
 */

static f64 as_float(u64 bits)
{
	u32 low = (u32)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return (f64)value;
}

static float *floats(const struct sim_job *job, int ix)
{
	return (float *)(uintptr_t)job->params[ix];
}

static u32 number(const struct sim_job *job, int ix)
{
	return (u32)job->params[ix];
}

/* saxpy(n, a, x, y): y += a * x */
static void run_saxpy(const struct sim_job *job)
{
	const float *restrict x = floats(job, 2);
	float *restrict y = floats(job, 3);
	float a = (float)as_float(job->params[1]);

	for (u32 i = 0; i < number(job, 0); i++)
		y[i] += a * x[i];
}

/*
 * matmul(c, a, b, m, n, k, a_row, a_col, b_row, b_col): c[m][n] = a[m][k] * b[k][n]; the last four
 * are the distances of rows and columns, so that either may be transposed.
 */
static void run_matmul(const struct sim_job *job)
{
	const float *restrict a = floats(job, 1);
	const float *restrict b = floats(job, 2);
	u32 n = number(job, 4), depth = number(job, 5), b_col = number(job, 9);

	for (u32 i = 0; i < number(job, 3); i++) {
		float *restrict c = floats(job, 0) + (size_t)i * n;

		memset(c, 0, n * sizeof(*c));
		for (u32 k = 0; k < depth; k++) {
			float x = a[(size_t)i * number(job, 6) + (size_t)k * number(job, 7)];
			const float *restrict row = b + (size_t)k * number(job, 8);

			if (b_col == 1)
				for (u32 j = 0; j < n; j++)
					c[j] += x * row[j];
			else
				for (u32 j = 0; j < n; j++)
					c[j] += x * row[(size_t)j * b_col];
		}
	}
}

static f64 flops_of_matmul(const struct sim_job *job)
{
	return 2.0 * number(job, 3) * number(job, 4) * number(job, 5);
}

/* relu(x, n): x = max(x, 0) */
static void run_relu(const struct sim_job *job)
{
	float *x = floats(job, 0);

	for (u32 i = 0; i < number(job, 1); i++)
		x[i] = x[i] > 0 ? x[i] : 0;
}

/* relu_backward(gradient, x, n): the gradient is 0 where x is */
static void run_relu_backward(const struct sim_job *job)
{
	float *restrict gradient = floats(job, 0);
	const float *restrict x = floats(job, 1);

	for (u32 i = 0; i < number(job, 2); i++)
		gradient[i] = x[i] > 0 ? gradient[i] : 0;
}

/* axpy(y, x, a, n): y += a * x */
static void run_axpy(const struct sim_job *job)
{
	float *restrict y = floats(job, 0);
	const float *restrict x = floats(job, 1);
	float a = (float)as_float(job->params[2]);

	for (u32 i = 0; i < number(job, 3); i++)
		y[i] += a * x[i];
}

static const struct sim_kernel kernels[] = {
	{ "saxpy", "4488", run_saxpy, NULL },
	{ "matmul", "8884444444", run_matmul, flops_of_matmul },
	{ "relu", "84", run_relu, NULL },
	{ "relu_backward", "884", run_relu_backward, NULL },
	{ "axpy", "8844", run_axpy, NULL },
};

static bool has_params(const struct sim_function *function, const char *params)
{
	if (strlen(params) != function->n_params)
		return false;
	for (u32 i = 0; i < function->n_params; i++)
		if (params[i] - '0' != function->param_bytes[i])
			return false;
	return true;
}

const struct sim_kernel *lull_sim_kernel_find(const struct sim_function *function)
{
	for (size_t i = 0; i < LULL_COUNT_OF(kernels); i++)
		if (strcmp(kernels[i].name, function->name) == 0 &&
		    has_params(function, kernels[i].params))
			return &kernels[i];
	return NULL;
}

f64 lull_sim_kernel_flops(const struct sim_job *job)
{
	if (job->kernel && job->kernel->flops)
		return job->kernel->flops(job);
	/* Two operations a thread, as in saxpy. */
	return 2.0 * job->grid[0] * job->grid[1] * job->grid[2] * job->block[0] * job->block[1] *
	       job->block[2];
}
