// LD_PRELOAD shim: a bind() to the IPv4 wildcard address becomes a bind() to
// 127.0.0.1. DynamoDB Local takes every interface and has no option against it.
// It runs with -Djava.net.preferIPv4Stack=true, so IPv6 needs no case here; the
// listeners are checked after the start in any event.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int fd, const struct sockaddr *addr, socklen_t len) {
  static int (*real)(int, const struct sockaddr *, socklen_t);
  if (!real) real = dlsym(RTLD_NEXT, "bind");
  if (addr && addr->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in in;
    memcpy(&in, addr, sizeof in);
    if (in.sin_addr.s_addr == htonl(INADDR_ANY)) {
      in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return real(fd, (struct sockaddr *)&in, sizeof in);
    }
  }
  return real(fd, addr, len);
}
