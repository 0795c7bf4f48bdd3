#include "record/session/stamps.h"

#include <sys/socket.h>
#include <unistd.h>

int lull_stamps_begin(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}
