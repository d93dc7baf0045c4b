import CFuse

// SAFETY: as in Operations+Names.swift; libfuse's file information is alive during the call.

func addFiles(to table: inout fuse_lowlevel_ops) {
  unsafe table.open = onOpen
  unsafe table.create = onCreate
  unsafe table.read = onRead
  unsafe table.write = onWrite
  unsafe table.flush = onFlush
  unsafe table.release = onRelease
  unsafe table.fsync = onFsync
  unsafe table.fallocate = onFallocate
  unsafe table.lseek = onLseek
  unsafe table.ioctl = onIoctl
  unsafe table.poll = onPoll
}

private typealias Info = UnsafeMutablePointer<fuse_file_info>

private func onOpen(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let flags = unsafe info.pointee.flags
  unsafe fileSystem(of: request).open(
    NodeID(rawValue: node), flags: flags, request: Request(request),
    reply: OpenReply(Pending(request), OpenAnswer(flags: flags)))
}

private func onCreate(
  _ request: OpaquePointer?, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>?, _ mode: UInt32,
  _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let flags = unsafe info.pointee.flags
  unsafe fileSystem(of: request).create(
    nameBytes(name).span, in: NodeID(rawValue: parent), mode: mode, flags: flags, request: Request(request),
    reply: CreateReply(Pending(request), CreateAnswer(flags: flags)))
}

private func onRead(_ request: OpaquePointer?, _ node: fuse_ino_t, _ size: Int, _ offset: Int, _ info: Info?)
{
  guard let request = unsafe request, let info = unsafe info else { return }
  let origin = unsafe ReadOrigin(isForPageCache: info.pointee.lock_owner == 0)
  unsafe fileSystem(of: request).read(
    NodeID(rawValue: node), handle: FileHandle(info), offset: offset, size: size, origin: origin,
    request: Request(request),
    reply: DataReply(Pending(request), DataAnswer(limit: size, flags: info.pointee.flags)))
}

private func onWrite(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ bytes: UnsafePointer<CChar>?, _ size: Int, _ offset: Int,
  _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let bytes = unsafe UnsafeRawBufferPointer(start: bytes, count: size)
  let payload = unsafe WritePayload(bytes)
  defer { payload.scrub() }
  let origin = unsafe WriteOrigin(
    flags: info.pointee.flags, isFromPageCache: shim_is_page_cache_write(info) != 0)
  unsafe fileSystem(of: request).write(
    NodeID(rawValue: node), handle: FileHandle(info), offset: offset, bytes: Span(_unsafeBytes: bytes),
    origin: origin,
    request: Request(request), reply: WriteReply(Pending(request), WriteAnswer(payload: payload)))
}

private func onFlush(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).flush(
    NodeID(rawValue: node), handle: FileHandle(info), lockOwner: info.pointee.lock_owner,
    request: Request(request), reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onRelease(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let origin = unsafe ReleaseOrigin(flags: info.pointee.flags, lockOwner: info.pointee.lock_owner)
  unsafe fileSystem(of: request).release(
    NodeID(rawValue: node), handle: FileHandle(info), origin: origin, request: Request(request),
    reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onFsync(_ request: OpaquePointer?, _ node: fuse_ino_t, _ dataOnly: Int32, _ info: Info?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).fsync(
    NodeID(rawValue: node), handle: FileHandle(info), scope: dataOnly == 0 ? .everything : .data,
    request: Request(request), reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onFallocate(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ mode: Int32, _ offset: Int, _ length: Int, _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).fallocate(
    NodeID(rawValue: node), handle: FileHandle(info), mode: mode, offset: offset, length: length,
    request: Request(request), reply: EmptyReply(Pending(request), EmptyAnswer()))
}

private func onLseek(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ offset: Int, _ whence: Int32, _ info: Info?
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  unsafe fileSystem(of: request).lseek(
    NodeID(rawValue: node), handle: FileHandle(info), offset: offset, whence: whence,
    request: Request(request),
    reply: SeekReply(Pending(request), SeekAnswer()))
}

private func onIoctl(
  _ request: OpaquePointer?, _ node: fuse_ino_t, _ command: UInt32, _ argument: UnsafeMutableRawPointer?,
  _ info: Info?, _ flags: UInt32, _ input: UnsafeRawPointer?, _ inputSize: Int, _ outputSize: Int
) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let input = unsafe UnsafeRawBufferPointer(start: input, count: inputSize)
  unsafe fileSystem(of: request).ioctl(
    NodeID(rawValue: node), handle: FileHandle(info), command: command, input: Span(_unsafeBytes: input),
    outputSize: outputSize, request: Request(request),
    reply: ControlReply(Pending(request), ControlAnswer()))
}

private func onPoll(_ request: OpaquePointer?, _ node: fuse_ino_t, _ info: Info?, _ wakeup: OpaquePointer?) {
  guard let request = unsafe request, let info = unsafe info else { return }
  let host = unsafe Host.of(request)
  let wakeup = unsafe wakeup.map { unsafe PollWakeup($0, host.connection) }
  unsafe host.fileSystem.poll(
    NodeID(rawValue: node), handle: FileHandle(info), events: info.pointee.poll_events, wakeup: wakeup,
    request: Request(request), reply: PollReply(Pending(request), PollAnswer()))
}
