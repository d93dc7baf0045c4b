# A program of SwiftPM has no bundle identifier, and Foundation's own object is not heard before synchronize().
s/defaults\.setPersistentDomain\(\[:\], forName: Bundle\.main\.bundleIdentifier!\)/try! Suite.standard.removeAll()/
/dump\(defaults\.persistentDomain/d
s/defaults\.persistentDomain\(forName: Bundle\.main\.bundleIdentifier!\)!\.values/["propertyWithDefault", "optionalProperty", "optionalPropertyWithDefault"].map { SettingDefaults(.standard).object(forKey: $0) }/
# NSColor is a class of AppKit; Color of Support has NSCoding, too.
s/#colorLiteral\(red: ([0-9.]+), [^)]*\)/Color(\1)/g
/^#if os\(macOS\)/,/^#endif/d
