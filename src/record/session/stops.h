/*
 * stops - the program is stopped: lull stops, too, and both continue together.
 *
 * A shell hears only of its own child, which is lull. While a program that has stopped itself waits
 * to be continued, a lull that runs on would keep the terminal, and nobody could continue it.
 *
 * Ctrl-Z is sent to both, and stops lull only when it has stopped the program (signals.c): the
 * shell would go on with the terminal while the program still reads from it, or has caught the
 * signal and means to go on.
 */
#ifndef LULL_RECORD_SESSION_STOPS_H
#define LULL_RECORD_SESSION_STOPS_H

struct lull_collector;

/*
 * If the program is stopped, stop with the same signal; returns when one of both was continued, and
 * so are both then. To be called when a child has changed its state; takes 4 ms if it stopped.
 */
void lull_stops_follow(struct lull_collector *c);

#endif
