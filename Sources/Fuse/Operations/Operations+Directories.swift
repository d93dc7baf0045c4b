import CFuse

// SAFETY: as in Operations+Names.swift; libfuse's file information is alive during the call.

func addDirectories(to table: inout fuse_lowlevel_ops) {
  unsafe table.opendir = onOpendir
  unsafe table.readdir = onReaddir
  unsafe table.readdirplus = onReaddirplus
  unsafe table.releasedir = onReleasedir
  unsafe table.fsyncdir = onFsyncdir
}

private typealias Info = UnsafeMutablePointer<fuse_file_info>

private func onOpendir(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let flags = unsafe info.pointee.flags
  unsafe fileSystem(of: request).opendir(
    NodeID(rawValue: node), flags: flags, request: Request(request),
    reply: OpenReply(Pending(request), OpenAnswer(flags: flags)))
}

private func onReaddir(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ size: Int, _ offset: Int, _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let answer = DirectoryAnswer(buffer: DirectoryBuffer(capacity: size))
  unsafe fileSystem(of: request).readdir(
    NodeID(rawValue: node), handle: FileHandle(info), offset: offset, request: Request(request),
    reply: DirectoryReply(Pending(request), answer))
}

private func onReaddirplus(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ size: Int, _ offset: Int, _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let answer = DirectoryPlusAnswer(buffer: DirectoryBuffer(capacity: size))
  unsafe fileSystem(of: request).readdirplus(
    NodeID(rawValue: node), handle: FileHandle(info), offset: offset, request: Request(request),
    reply: DirectoryPlusReply(Pending(request), answer))
}

private func onReleasedir(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).releasedir(
    NodeID(rawValue: node), handle: FileHandle(info), request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onFsyncdir(_ request: OpaquePointer?, _ node: fuse_ino_t, _ dataOnly: Int32, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).fsyncdir(
    NodeID(rawValue: node), handle: FileHandle(info), scope: dataOnly == 0 ? .everything : .data,
    request: Request(request), reply: EmptyReply(Pending(request), EmptyAnswer()))
}
