/*
 * inlined - a program with known lines, for tests of the resolver. Prints nothing; its addresses are looked up
 * by symbol. The comments with numbers are what the tests expect to find.
 */
static volatile int sink;

static inline __attribute__((always_inline)) void innermost(int x)
{
	sink = x; /* line 9: in innermost */
}

static inline __attribute__((always_inline)) void middle(int x)
{
	innermost(x); /* line 14: in middle */
}

__attribute__((noinline)) void outer(void)
{
	middle(7); /* line 19: in outer */
}

int main(void)
{
	outer();
	return 0;
}
