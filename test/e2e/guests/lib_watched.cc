/*
 * lib_watched: a library whose functions take and return values in every way there is. Its guest is lib_guest.
 */
#include "lib_watched.h"

#include <cstdarg>
#include <stdexcept>

#include <unistd.h>

extern "C" {

int w_add(int a, int b)
{
	return a + b;
}

double w_many(int a, double b, int c, double d, int e, double f, int g, double h, int i, double j,
	      int k, double l, int m, double n, int o, double p, int q, double r, int s, double t)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
	       12 * l + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q + 18 * r + 19 * s + 20 * t;
}

double w_sum(int n, ...)
{
	va_list rest;
	double sum = 0;

	va_start(rest, n);
	for (int i = 0; i < n; i++)
		sum += i % 2 ? va_arg(rest, int) : va_arg(rest, double);
	va_end(rest);
	return sum;
}

struct big w_big(struct big in, int more)
{
	for (long &v : in.v)
		v += more;
	return in;
}

struct pair w_pair(double a, float b)
{
	return { a * 2, b * 3 };
}

struct four w_four(struct four in)
{
	return { in.d, in.c, in.b, in.a };
}

long double w_long_double(long double a, int b)
{
	return a * b;
}

float4 w_vector(float4 a, float4 b)
{
	return a * b;
}

long w_call(long (*fn)(long), long arg)
{
	return fn(arg) + 1;
}

int w_throw(int what)
{
	if (what)
		throw std::runtime_error("thrown");
	return 7;
}

/* The call is a jump, and goes through the offset table. */
int w_jump(int a, int b)
{
	return w_add(b, a);
}

pid_t w_fork(void)
{
	return fork();
}

int w_unused(void)
{
	return 1;
}

/* Their addresses as the library has them, by W_SHARED and so on: in data, not in an offset table. */
static number_fn *const own[] = { w_shared, w_direct, w_told };

int w_shared(int n)
{
	return n + 1;
}

int w_direct(int n)
{
	return n + 2;
}

int w_told(int n)
{
	return n + 3;
}

number_fn *w_own(int which)
{
	return own[which];
}

} /* extern "C" */
