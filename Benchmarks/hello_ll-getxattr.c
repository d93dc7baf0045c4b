/*
 * libfuse's example hello_ll with the getxattr that upstream's has since 3.15. Without one the kernel
 * remembers the first ENOSYS and never asks again, so there would be nothing to compare with.
 *
 * cc -DFUSE_USE_VERSION=34 -DHELLO_LL='"…/hello_ll.c"' hello_ll-getxattr.c $(pkg-config --cflags --libs fuse3)
 */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <string.h>

static void getxattr_as_upstream(fuse_req_t request, fuse_ino_t inode, const char *name, size_t size)
{
	static const char value[] = "hello_ll_getxattr_value";

	(void) inode;
	(void) size;
	if (strcmp(name, "hello_ll_getxattr_name") == 0)
		fuse_reply_buf(request, value, strlen(value));
	else
		fuse_reply_err(request, ENOTSUP);
}

static struct fuse_session *session_with_getxattr(struct fuse_args *arguments,
						  const struct fuse_lowlevel_ops *operations,
						  size_t size, void *context)
{
	struct fuse_lowlevel_ops with_getxattr = *operations;

	with_getxattr.getxattr = getxattr_as_upstream;
	return fuse_session_new(arguments, &with_getxattr, size, context);
}

#undef fuse_session_new
#define fuse_session_new session_with_getxattr
#include HELLO_LL
