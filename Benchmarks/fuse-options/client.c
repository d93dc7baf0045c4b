// Measures an operation in several mounts: client OPERATION ROUNDS CALLS FOLDER[:FILE[:ATTRIBUTE]]...
//
// By default the file is `hello`, as in a mount of `server`; other file systems are measured with a file of theirs.
// The mounts take turns, a batch of calls each, and the order changes with each round, so that what else the machine does
// falls on all of them. Printed are the median time, the ratio to the first mount's (the median of the rounds' ratios, and
// its quartiles), and the requests that one call makes, where `server` can tell them.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct mount {
  const char *path, *name, *attribute;
  int directory, file;
  double *times;
};

static char bytes[1 << 21];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static int compare(const void *left, const void *right) {
  double difference = *(const double *)left - *(const double *)right;
  return difference < 0 ? -1 : difference > 0;
}

static double quantile(const double *values, int count, double part) {
  double *sorted = malloc(count * sizeof *sorted), result;
  memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare);
  result = sorted[(int)(part * (count - 1))];
  free(sorted);
  return result;
}

static void open_read_close(const struct mount *mount, const char *name, size_t size, int to_the_end) {
  int file = openat(mount->directory, name, O_RDONLY);
  ssize_t count;
  if (file < 0) fail(mount->path);
  do {
    count = read(file, bytes, size);
    if (count < 0) fail("read");
  } while (to_the_end && count > 0);
  if (close(file)) fail("close");
}

static void list(const struct mount *mount, const char *name, int with_status) {
  int directory = openat(mount->directory, name, O_RDONLY | O_DIRECTORY);
  DIR *stream = directory < 0 ? NULL : fdopendir(directory);
  struct dirent *entry;
  struct stat status;
  if (!stream) fail(mount->path);
  while ((entry = readdir(stream)))
    if (with_status && fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW)) fail(entry->d_name);
  closedir(stream);
}

static void call(const char *operation, const struct mount *mount) {
  struct stat status;
  if (!strcmp(operation, "open+read+close")) open_read_close(mount, mount->name, 4096, 0);
  else if (!strcmp(operation, "cat")) open_read_close(mount, mount->name, 131072, 1);
  else if (!strcmp(operation, "cat-large")) open_read_close(mount, "large", 131072, 1);
  else if (!strcmp(operation, "read-large")) open_read_close(mount, "large", sizeof bytes, 0);
  else if (!strcmp(operation, "stat")) {
    if (fstatat(mount->directory, mount->name, &status, 0)) fail("stat");
  } else if (!strcmp(operation, "getxattr")) {
    if (fgetxattr(mount->file, mount->attribute, bytes, 256) < 0) fail("getxattr");
  } else if (!strcmp(operation, "ls")) list(mount, "many", 0);
  else if (!strcmp(operation, "ls-l")) list(mount, "many", 1);
  else if (!strcmp(operation, "ls-small")) list(mount, ".", 0);
  else {
    fprintf(stderr, "client: %s is no operation\n", operation);
    exit(2);
  }
}

static double median_of_batch(const char *operation, const struct mount *mount, int calls) {
  double times[calls];
  for (int index = 0; index < calls; index++) {
    double began = now();
    call(operation, mount);
    times[index] = now() - began;
  }
  return quantile(times, calls, 0.5);
}

// The requests that the calls since the last time have made, rounded for each call. Returns whether they can be had.
static int requests(const struct mount *mount, int calls, char *text, size_t size) {
  char counted[512] = "", *word, *rest = counted;
  size_t used = 0;
  ssize_t length = fgetxattr(mount->directory, "user.requests", counted, sizeof counted - 1);
  counted[length > 0 ? length : 0] = 0;
  text[0] = 0;
  while ((word = strsep(&rest, " ")) && *word) {
    long number = strtol(strsep(&rest, " "), NULL, 10);
    long each = (number + calls / 2) / calls;
    if (each && used < size) used += snprintf(text + used, size - used, each == 1 ? "%s " : "%s×%ld ", word, each);
  }
  return length >= 0;
}

int main(int count, char **words) {
  const char *operation = words[1];
  int rounds = count > 4 ? atoi(words[2]) : 0, calls = count > 4 ? atoi(words[3]) : 0, mounts = count - 4;
  if (rounds < 1 || calls < 1) {
    fprintf(stderr, "usage: client OPERATION ROUNDS CALLS FOLDER[:FILE[:ATTRIBUTE]]...\n");
    return 2;
  }
  struct mount all[mounts];
  for (int index = 0; index < mounts; index++) {
    struct mount *mount = &all[index];
    char *word = words[4 + index], *name;
    mount->path = strsep(&word, ":");
    name = strsep(&word, ":");
    mount->name = name ? name : "hello";
    mount->attribute = word ? word : "user.name";
    mount->directory = open(mount->path, O_RDONLY | O_DIRECTORY);
    mount->file = openat(mount->directory, mount->name, O_RDONLY);
    mount->times = malloc(rounds * sizeof(double));
    if (mount->file < 0) fail(mount->path);
  }
  // The first round only warms up.
  for (int round = -1; round < rounds; round++)
    for (int turn = 0; turn < mounts; turn++) {
      struct mount *mount = &all[(turn + round + 1) % mounts];
      double time = median_of_batch(operation, mount, calls);
      if (round >= 0) mount->times[round] = time;
    }
  for (int index = 0; index < mounts; index++) {
    struct mount *mount = &all[index];
    double ratios[rounds];
    char text[512];
    int repeats = calls > 1 ? 100 : 4;
    for (int round = 0; round < rounds; round++) ratios[round] = mount->times[round] / all[0].times[round];
    if (requests(mount, 1, text, sizeof text)) {
      for (int repeat = 0; repeat < repeats; repeat++) {
        call(operation, mount);
        // The names of a listing expire in between.
        if (calls == 1) usleep(100000);
      }
      requests(mount, repeats, text, sizeof text);
    }
    printf("| %s | %s | %.2f µs | %.3f | %.3f to %.3f | %s|\n", operation, strrchr(mount->path, '/') + 1,
      quantile(mount->times, rounds, 0.5) * 1e6, quantile(ratios, rounds, 0.5), quantile(ratios, rounds, 0.25),
      quantile(ratios, rounds, 0.75), text);
  }
  return 0;
}
