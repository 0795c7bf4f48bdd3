/*
 * nccl_ops - what the agent tells the source of NCCL's operations; source_nccl.c.
 */
#ifndef LULL_AGENT_CALLS_NCCL_OPS_H
#define LULL_AGENT_CALLS_NCCL_OPS_H

/* Write what is held back: the process leaves, or a communicator goes. Not for signal handlers. */
void lull_nccl_flush(void);

#endif
