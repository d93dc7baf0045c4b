import Glibc
import Model
import Platform
import Testing

@Suite struct StoreErrorTests {
  private static let numbers: [(StoreError, Int32)] = [
    (.notFound, ENOENT), (.exists, EEXIST), (.notEmpty, ENOTEMPTY), (.isDirectory, EISDIR),
    (.notDirectory, ENOTDIR),
    (.invalidName(reason: "r"), EINVAL), (.nameTooLong, ENAMETOOLONG), (.notUnicode, EILSEQ),
    (.invalidValue(reason: "r"), EINVAL), (.tooLarge(limit: 1), EFBIG), (.notPermitted(reason: "r"), EPERM),
    (.accessDenied(reason: "r"), EACCES), (.locked, ENOKEY), (.readOnly(reason: "r"), EROFS),
    (.crossesStores, EXDEV),
    (.noSuchAttribute, ENODATA), (.resultTooLarge, ERANGE), (.unsupported(reason: "r"), EOPNOTSUPP),
    (.noSpace, ENOSPC), (.quotaExceeded, EDQUOT), (.tooManyOpen, EMFILE), (.outOfMemory, ENOMEM),
    (.unreachable(reason: "r"), EIO),
    (.damaged(what: "w"), EIO), (.interrupted, EINTR),
    (.system(.EKEYREJECTED, operation: "o"), EKEYREJECTED),
  ]

  @Test(arguments: numbers)
  func errorHasANumber(error: StoreError, number: Int32) {
    #expect(error.errno.rawValue == number)
  }

  @Test(arguments: numbers)
  func messageIsOneLineOfItsOwn(error: StoreError, number: Int32) {
    #expect(!error.message.isEmpty && error.message != "it failed" && !error.message.contains("\n"))
  }
}
