# Linux has no Objective-C; an @Observable class is watched in its place.
s/^class SampleWatcheeClass/@Observable class SampleWatcheeClass/
/^ *@objc dynamic$/d
s/^import XCTest$/import Observation\
import XCTest/
