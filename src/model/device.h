/*
 * device - which rows of the table `device` are the same device.
 *
 * A device has a row for each process that uses it, with its number in that process, and one more
 * (process 0) with the driver's number if its power and clocks were recorded. Rows with the same
 * uuid are one device. Outputs count, name and number devices by one representative row: the
 * driver's, whose numbers are unique, else the first.
 */
#ifndef LULL_MODEL_DEVICE_H
#define LULL_MODEL_DEVICE_H

#include "trace/reader.h"

/* The row that stands for each, by row id; 0 for 0. Free with free(). */
u32 *lull_device_rows(struct lull_reader *r);

/* The same for one of them. It looks through all rows, of which there are few. */
u32 lull_device_row_of(struct lull_reader *r, u32 device);

/* The number that identifies a device; 0 if there is no such row. */
u32 lull_device_number(struct lull_reader *r, u32 device);

/*
 * What all rows of a device say together: its representative row, with what that lacks from the
 * others. The driver's row has no multiprocessors, for example.
 */
struct lull_device_row lull_device_joined(struct lull_reader *r, u32 device);

/* The first process that uses the device of this row; 0 if none does. */
u32 lull_device_process(struct lull_reader *r, u32 device);

/*
 * How the program that uses the devices was started: the command line of the first process that
 * uses one, else of the first that has one; "PROGRAM" if none was recorded. Borrowed.
 */
const char *lull_device_command(struct lull_reader *r);

#endif
