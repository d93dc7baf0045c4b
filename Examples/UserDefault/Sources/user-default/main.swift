// Settings by UserDefault: plain values, an optional that remembers nil, and a type of one's own.
import UserDefault

struct Window: Codable, Equatable, DefaultsValueConvertible {
  var width = 640
  var title = "untitled"
}

func run() async {
  @UserDefault("hasSeenSplashScreen") var hasSeenSplashScreen = false
  @UserDefault("count") var count: Int? = 42
  @UserDefault("window") var window = Window()

  print(hasSeenSplashScreen, count ?? "nil", window.title)
  hasSeenSplashScreen = true
  count = nil
  window.title = "main"
  print(hasSeenSplashScreen, count ?? "nil", window.title)

  for await next in $window.values {
    print("window:", next.title)
    if next.title == "closed" { break }
    window.title = "closed"
  }
}

await run()
