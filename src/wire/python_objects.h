/*
 * python_objects - what CPython's objects say by numbers, the same in all versions that are read
 * (python_layouts.def has what differs).
 */
#ifndef LULL_WIRE_PYTHON_OBJECTS_H
#define LULL_WIRE_PYTHON_OBJECTS_H

/* _PyInterpreterFrame.owner: from here on a trampoline of the interpreter, without code. */
#define LULL_PYTHON_OWNER_INTERPRETER 3

/* PyASCIIObject.state: interned:2 kind:3 compact:1 ascii:1, the kind being bytes per character. */
#define LULL_PYTHON_STR_KIND(state)    ((state) >> 2 & 7)
#define LULL_PYTHON_STR_COMPACT(state) ((state) >> 5 & 1)
#define LULL_PYTHON_STR_ASCII(state)   ((state) >> 6 & 1)

#endif
