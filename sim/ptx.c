#include "cuda_int.h"

#include <ctype.h>
#include <string.h>

/* The word at `p`, as PTX spells names. */
static size_t word_len(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$' || p[n] == '%')
		n++;
	return n;
}

/* Size of a parameter, from a type such as ".u64" or ".align 8 .f32". */
static u8 type_bytes(const char *p, const char *end)
{
	for (; p < end; p++)
		if (*p == '.' && strchr("usbf", p[1]) && isdigit((unsigned char)p[2]))
			return (u8)(atoi(p + 2) / 8);
	return 8;
}

/* Parameters between the parentheses that begin at `p`. */
static void parse_params(struct sim_function *function, const char *p)
{
	const char *close = strchr(p, ')');

	while (close && (p = strstr(p, ".param")) && p < close) {
		const char *end = p + strcspn(p, ",)");

		if (function->n_params < SIM_MAX_PARAMS)
			function->param_bytes[function->n_params++] =
				type_bytes(p + strlen(".param"), end);
		p = end;
	}
}

struct sim_function *lull_sim_ptx_parse(const char *text)
{
	struct sim_function *functions = NULL;

	while ((text = strstr(text, ".entry"))) {
		struct sim_function *function;
		size_t n;

		text += strlen(".entry");
		text += strspn(text, " \t\r\n");
		n = word_len(text);
		function = calloc(1, sizeof(*function));
		if (!n || !function) {
			free(function);
			continue;
		}
		function->name = strndup(text, n);
		text += n;
		text += strspn(text, " \t\r\n");
		if (*text == '(')
			parse_params(function, text);
		function->kernel = lull_sim_kernel_find(function);
		function->next = functions;
		functions = function;
	}
	return functions;
}
