/*
 * mem - allocation for commands, which exit if there is no memory.
 *
 * That holds for the recorder, too: it ends as it would by a crash, at a moment when file and
 * shared memory together hold what was recorded (ARCHITECTURE, "What happens when something dies"),
 * and the program goes on. To seal the report would take memory. lull_mem_last_words() has the
 * command for it in the one line that is printed.
 *
 * A library inside somebody's program may not end it: lull_mem_give_up() gives it another way out.
 *
 * Never used by the agent. Free with free().
 */
#ifndef LULL_BASE_MEM_H
#define LULL_BASE_MEM_H

#include <stdio.h>

#include "base/types.h"

/*
 * What to say besides when memory is gone: what that means for the user, and what to do. "" =
 * nothing, as in the beginning.
 */
void lull_mem_last_words(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Call this instead of ending the process when memory is gone, with the sentence that would have
 * been printed. It does not return. NULL: end the process, as in the beginning.
 */
void lull_mem_give_up(void (*way_out)(const char *sentence));

/* Zeroed memory; prints one line and ends the command if there is none. */
void *lull_alloc(size_t n, size_t elem_bytes);

/* Resize; the new part is not zeroed. Ends the command if there is no memory. */
void *lull_realloc(void *at, size_t n, size_t elem_bytes);

/* A copy of `len` bytes of `text` with a NUL after it. */
char *lull_strndup(const char *text, size_t len);

/* A copy of the string. */
char *lull_strdup(const char *text);

/* open_memstream() that does not fail. Close with fclose(), then free() what it made. */
FILE *lull_memstream(char **at, size_t *len);

#endif
