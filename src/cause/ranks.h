/*
 * ranks - what the causes of ranks have in common.
 */
#ifndef LULL_CAUSE_RANKS_H
#define LULL_CAUSE_RANKS_H

/* A busy device that spends this part of the step in exposed collectives is held up by ranks. */
#define LULL_RANKS_SHARE 0.20

#endif
