/*
 * own_stack - run the command on a stack that no limit of the shell makes too small.
 *
 * `ulimit -s` is meant for the program that lull starts, and it gets it. Our own functions, and the
 * libraries that we use, need more than a small limit allows.
 */
#ifndef LULL_BASE_OWN_STACK_H
#define LULL_BASE_OWN_STACK_H

/*
 * What `run` returns: called as it is if the limit is large enough (or there is no memory for
 * another stack), else on a stack of its own, and so are threads that are started. Once in a
 * process.
 */
int lull_own_stack_run(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
