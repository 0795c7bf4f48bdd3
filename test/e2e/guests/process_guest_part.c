/*
 * process_guest_part - a library in a folder that only the RUNPATH of process_guest leads to.
 */
int process_guest_part;
