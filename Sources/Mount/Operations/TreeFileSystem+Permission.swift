import Fuse
import Glibc
import Model
import Platform
import Store
import Tree

extension TreeFileSystem {
  /// Runs `body` with the permit that an operation takes; where a person has to be asked first, once they have
  /// agreed. Meanwhile the reply is parked, and delays no other request. An interrupt withdraws the question.
  ///
  /// `flags`: open(2)'s; with O_NONBLOCK no person is asked.
  func permitted<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of node: NodeID, about name: EntryName? = nil, flags: Int32 = 0,
    _ permission: () throws(StoreError) -> Permission?,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let needed: Permission?
    do throws(StoreError) { needed = try permission() } catch {
      return refuse(reply, error, node, about: name)
    }
    switch needed {
    case .none: body(reply, nil)
    case .given(let permit): body(reply, permit)
    case .asked where flags & O_NONBLOCK != 0: refuse(reply, .wouldWait, node, about: name)
    case .asked(let request): ask(reply, of: node, about: name, request, body)
    }
  }

  private func ask<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of node: NodeID, about name: EntryName?, _ request: PermissionRequest,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let parked = reply.park { parked in
      request.withdraw()
      _ = parked.claim()?.fail(.EINTR)
    }
    request.start { [self] outcome in
      guard let reply = parked.claim() else { return }
      switch outcome {
      case .success(let permit): body(reply, permit)
      case .failure(let error): refuse(reply, error, node, about: name)
      }
    }
  }
}
