/*
 * static_guest - a program without a dynamic loader: the agent cannot be in it, and must not be
 * missed.
 */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	usleep(2000);
	puts("static");
	return 9;
}
