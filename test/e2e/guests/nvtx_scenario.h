/*
 * nvtx_scenario - a program that uses all of NVTX, for clients that reach the agent in different
 * ways.
 */
#ifndef LULL_TEST_E2E_NVTX_SCENARIO_H
#define LULL_TEST_E2E_NVTX_SCENARIO_H

#include "agent/nvtx/nvtx_abi.h"

/*
 * Do what argv[1] names (see the table in nvtx_scenario.c) through two instances of NVTX, which may
 * be the same. Exit status: 0 if every call returned what NVTX promises, else 1, with a line on
 * stderr.
 */
int nvtx_scenario(const struct lull_nvtx_calls *nvtx, const struct lull_nvtx_calls *other,
		  const char *what);

#endif
