import CFuse

// SAFETY, for all operations: libfuse calls with a live request, which the reply then owns; names and payloads lie in its
// receive buffer, which is ours until the operation returns. A request without a reply object has `fuse_reply_none`.

func addNames(to table: inout fuse_lowlevel_ops) {
  unsafe table.lookup = onLookup
  unsafe table.forget = onForget
  unsafe table.forget_multi = onForgetMulti
  unsafe table.mknod = onMknod
  unsafe table.mkdir = onMkdir
  unsafe table.unlink = onUnlink
  unsafe table.rmdir = onRmdir
  unsafe table.symlink = onSymlink
  unsafe table.rename = onRename
  unsafe table.link = onLink
  unsafe table.readlink = onReadlink
}

private func onLookup(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).lookup(
    nameBytes(name).span, in: NodeID(rawValue: parent), request: Request(request),
    reply: EntryReply(Pending(request), EntryAnswer()))
}

private func onForget(_ request: OpaquePointer?, _ node: fuse_ino_t, _ lookups: UInt64) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).forget(NodeID(rawValue: node), lookups: lookups)
  unsafe fuse_reply_none(request)
}

private func onForgetMulti(
  _ request: OpaquePointer?, _ count: Int, _ list: UnsafeMutablePointer<fuse_forget_data>?
) {
  guard let request = unsafe request else { return }
  let fileSystem = unsafe fileSystem(of: request)
  unsafe UnsafeBufferPointer(start: list, count: count).forEach { item in
    fileSystem.forget(NodeID(rawValue: item.ino), lookups: item.nlookup)
  }
  unsafe fuse_reply_none(request)
}

private func onMknod(
  _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: UInt32,
  _ device: UInt
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).mknod(
    nameBytes(name).span, in: NodeID(rawValue: parent), mode: mode, device: UInt64(device),
    request: Request(request), reply: EntryReply(Pending(request), EntryAnswer()))
}

private func onMkdir(
  _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: UInt32
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).mkdir(
    nameBytes(name).span, in: NodeID(rawValue: parent), mode: mode, request: Request(request),
    reply: EntryReply(Pending(request), EntryAnswer()))
}

private func onUnlink(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).unlink(
    nameBytes(name).span, in: NodeID(rawValue: parent), request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onRmdir(_ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).rmdir(
    nameBytes(name).span, in: NodeID(rawValue: parent), request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onSymlink(
  _ request: OpaquePointer?, _ target: UnsafePointer<CChar>?, _ parent: fuse_ino_t,
  _ name: UnsafePointer<CChar>?
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).symlink(
    nameBytes(name).span, in: NodeID(rawValue: parent), target: nameBytes(target).span,
    request: Request(request), reply: EntryReply(Pending(request), EntryAnswer()))
}

private func onRename(
  _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ newParent: fuse_ino_t,
  _ newName: UnsafePointer<CChar>?, _ flags: UInt32
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).rename(
    nameBytes(name).span, in: NodeID(rawValue: parent), to: nameBytes(newName).span,
    in: NodeID(rawValue: newParent), flags: flags, request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onLink(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ newParent: fuse_ino_t, _ newName: UnsafePointer<CChar>?
) {
  guard let request = unsafe request else { return }
  unsafe fileSystem(of: request).link(
    NodeID(rawValue: node), as: nameBytes(newName).span, in: NodeID(rawValue: newParent),
    request: Request(request), reply: EntryReply(Pending(request), EntryAnswer()))
}

private func onReadlink(_ request: OpaquePointer?, _ node: fuse_ino_t) {
  guard let request = unsafe request else { return }
  // PATH_MAX less the zero byte: the kernel takes no longer target.
  unsafe fileSystem(of: request).readlink(
    NodeID(rawValue: node), request: Request(request),
    reply: DataReply(Pending(request), DataAnswer(limit: 4095)))
}
