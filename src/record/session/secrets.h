/*
 * secrets - which parts of an environment and a command line must not be stored in a report.
 *
 * Reports are shared: mailed, attached to issues and put on shared disks. So a value is hidden if
 * its name says that it is a secret, or if it looks like one itself. A value hidden by mistake
 * costs little, a value stored by mistake costs a password.
 */
#ifndef LULL_RECORD_SESSION_SECRETS_H
#define LULL_RECORD_SESSION_SECRETS_H

#include "base/str.h"
#include "base/types.h"

/* What stands in place of a hidden value. */
#define LULL_SECRETS_HIDDEN "(hidden)"

/* Whether a name such as HF_TOKEN or --db-password says that its value is a secret. */
bool lull_secrets_is_name(const char *name, size_t len);

/* Whether a value looks like one: a JWT, a known key format, a URL with a password in it. */
bool lull_secrets_is_value(const char *value);

/* The value to store for an environment variable: `value` itself, or LULL_SECRETS_HIDDEN. */
const char *lull_secrets_filter_env(const char *name, const char *value);

/*
 * Append the command line to `to`, words separated by blanks and quoted where they need it, with
 * the values of --token X, --password=X, PASSWORD=X, "Authorization: X" and the like hidden.
 */
void lull_secrets_filter_argv(int argc, char *const *argv, struct lull_str *to);

#endif
