import CFuse

// SAFETY: as in Operations+Names.swift.

func addAttributes(to table: inout fuse_lowlevel_ops) {
  unsafe table.getattr = onGetattr
  unsafe table.setattr = onSetattr
  unsafe table.access = onAccess
  unsafe table.statfs = onStatfs
  unsafe table.setxattr = onSetxattr
  unsafe table.getxattr = onGetxattr
  unsafe table.listxattr = onListxattr
  unsafe table.removexattr = onRemovexattr
}

private func onGetattr(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).getattr(
    NodeID(rawValue: node), handle: info.map { unsafe FileHandle(rawValue: $0.pointee.fh) },
    request: Request(request), reply: AttributesReply(Pending(request), AttributesAnswer()))
}

private func onSetattr(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ status: UnsafeMutablePointer<stat>?, _ mask: Int32,
  _ info: UnsafeMutablePointer<fuse_file_info>?
) {
  guard let request = unsafe request, let status = unsafe status else { return }
  unsafe fileSystem(of: request).setattr(
    NodeID(rawValue: node), to: AttributeChanges(status.pointee, mask: mask),
    handle: info.map { unsafe FileHandle(rawValue: $0.pointee.fh) }, request: Request(request),
    reply: AttributesReply(Pending(request), AttributesAnswer()))
}

private func onAccess(_ request: OpaquePointer?, _ node: fuse_ino_t, _ mask: Int32) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).access(
    NodeID(rawValue: node), mask: mask, request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onStatfs(_ request: OpaquePointer?, _ node: fuse_ino_t) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).statfs(
    NodeID(rawValue: node), request: Request(request),
    reply: StatisticsReply(Pending(request), StatisticsAnswer()))
}

private func onSetxattr(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?,
  _ value: UnsafePointer<CChar>?,
  _ size: Int, _ flags: Int32
) {
  guard let request = unsafe request else { return }
  let bytes = unsafe UnsafeRawBufferPointer(start: value, count: size)
  unsafe fileSystem(of: request).setxattr(
    NodeID(rawValue: node), name: nameBytes(name).span, value: Span(_unsafeBytes: bytes), flags: flags,
    request: Request(request), reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onGetxattr(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ size: Int
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).getxattr(
    NodeID(rawValue: node), name: nameBytes(name).span, request: Request(request),
    reply: ExtendedAttributeReply(Pending(request), ExtendedAttributeAnswer(size: size)))
}

private func onListxattr(_ request: OpaquePointer?, _ node: fuse_ino_t, _ size: Int) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).listxattr(
    NodeID(rawValue: node), request: Request(request),
    reply: ExtendedAttributeReply(Pending(request), ExtendedAttributeAnswer(size: size)))
}

private func onRemovexattr(_ request: OpaquePointer?, _ node: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).removexattr(
    NodeID(rawValue: node), name: nameBytes(name).span, request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}
