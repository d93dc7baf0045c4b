import Testing

/// The time of day as the programs of a test have it that get these variables: that of the machine, and an offset that can be changed.
struct FakeClock {
  /// A trait of the tests that use it.
  static var isThere: any TestTrait { .enabled(if: System.exists("/usr/bin/gcc"), "needs gcc") }

  let variables: [String]
  private let world: World
  private let offset: String

  /// An offset of 0, in files of a world.
  init(_ world: World) throws {
    self.world = world
    offset = world.root + "/clock"
    let library = world.root + "/clock.so"
    variables = ["LD_PRELOAD=\(library)", "CLOCK_OFFSET=\(offset)"]
    try world.check("gcc -shared -fPIC -x c - -o '\(library)'", sending: Array(Self.source.utf8))
    try set(0)
  }

  /// From now on the clock is so many seconds ahead.
  func set(_ seconds: Int64) throws {
    try world.check("echo \(seconds) > '\(offset).new'; mv '\(offset).new' '\(offset)'")
  }

  private static let source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>
    static long long offset(void) {
      char text[32] = "";
      int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
      if (file < 0) return 0;
      if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
      close(file);
      return atoll(text);
    }
    int clock_gettime(clockid_t clock, struct timespec *time) {
      int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
      int result = real(clock, time);
      if (clock == CLOCK_REALTIME) time->tv_sec += offset();
      return result;
    }
    int gettimeofday(struct timeval *restrict now, void *restrict zone) {
      struct timespec time;
      clock_gettime(CLOCK_REALTIME, &time);
      now->tv_sec = time.tv_sec;
      now->tv_usec = time.tv_nsec / 1000;
      return 0;
    }
    time_t time(time_t *result) {
      struct timespec time;
      clock_gettime(CLOCK_REALTIME, &time);
      if (result) *result = time.tv_sec;
      return time.tv_sec;
    }
    """
}
