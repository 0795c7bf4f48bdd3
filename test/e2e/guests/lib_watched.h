#ifndef LULL_TEST_LIB_WATCHED_H
#define LULL_TEST_LIB_WATCHED_H

#include <sys/types.h>

struct big {
	long v[64];
};
struct pair {
	double a;
	float b;
};
struct four {
	double a, b, c, d;
};
typedef float float4 __attribute__((vector_size(16)));
typedef int number_fn(int n);

enum { W_SHARED, W_DIRECT, W_TOLD };

extern "C" {
int w_add(int a, int b);
double w_many(int a, double b, int c, double d, int e, double f, int g, double h, int i, double j,
	      int k, double l, int m, double n, int o, double p, int q, double r, int s, double t);
double w_sum(int n, ...);
struct big w_big(struct big in, int more);
struct pair w_pair(double a, float b);
struct four w_four(struct four in);
long double w_long_double(long double a, int b);
float4 w_vector(float4 a, float4 b);
long w_call(long (*fn)(long), long arg);
int w_throw(int what);
int w_jump(int a, int b);
pid_t w_fork(void);
int w_unused(void);
/*
 * Called, and their addresses taken. Of w_shared, x86_64 has one entry for both where its linker is
 * GNU's. The caller asks for that with w_direct on all machines. w_told is never called by its
 * name.
 */
int w_shared(int n);
int w_direct(int n) __attribute__((noplt));
int w_told(int n);
number_fn *w_own(int which);
}

#endif
