// A program that uses the wrappers, for tests that need another process.
//
//   WrapperProgram set SUITE KEY VALUE       sets a string
//   WrapperProgram count SUITE KEY N         sets an integer to 1, 2, … N
//   WrapperProgram remove SUITE KEY          removes a key
//   WrapperProgram secret SERVICE VALUE      sets a secret; an empty value deletes it
//   WrapperProgram get SERVICE               prints a secret
//   WrapperProgram follow SUITE KEY LAST     prints every value of a string from now on, until it is LAST
//   WrapperProgram hurry SUITE KEY N         sets an integer N times and prints the monotonic time of each set
import FTPropertyWrappers
import Foil
import Glibc
import UserDefault

let arguments = CommandLine.arguments.dropFirst() + ["", "", "", ""]
let (verb, place, key, value) = (arguments[1], arguments[2], arguments[3], arguments[4])

/// Nanoseconds since the machine was started.
func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

switch verb {
case "set": FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place)).wrappedValue = value
case "remove": FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place)).wrappedValue = nil
case "count":
  let number = UserDefault(wrappedValue: 0, key, defaults: Suite(place))
  for next in 1...(Int(value) ?? 1) { number.wrappedValue = next }
case "hurry":
  let number = FoilDefaultStorage(wrappedValue: 0, key: key, userDefaults: Suite(place))
  for next in 1...(Int(value) ?? 1) {
    let began = now()
    number.wrappedValue = next
    print(next, began)
    usleep(5000)
  }
case "secret": GenericPassword<String>(service: place).wrappedValue = key.isEmpty ? nil : key
case "get": print(GenericPassword<String>(service: place).wrappedValue ?? "nil")
case "follow":
  let text = FoilDefaultStorageOptional<String>(key: key, userDefaults: Suite(place))
  for await next in text.projectedValue.values {
    print(next ?? "nil")
    fflush(nil)
    if next == value { break }
  }
default: exit(2)
}
