public import Model
import SecretMemory
public import Store

extension KeychainStore {
  /// The present one-time code of an item: of the time step, or of the counter, which is stored one higher first.
  ///
  /// `counting`: whether a counter may be changed. A permit to read `ItemSecrets.code` is enough.
  /// - Throws: `notFound`, also for an item without an `otpauth:` URI; `unsupported` for a URI whose codes are none of RFC
  ///   6238 or 4226; `readOnly` where a counter can't be changed; as `otpauth`.
  public nonisolated func oneTimeCode(
    of item: Item, _ permit: Permit?, counting: Bool = true, at time: Timestamp = .now
  ) throws(StoreError) -> OneTimeCode {
    if let elsewhere = try oneTimeCodes(for: permit) { return try elsewhere.oneTimeCode(of: item.id) }
    let code = try withOtpauth(of: item, forCode: permit) { (uri) throws(StoreError) -> OneTimeCode? in
      let generator = try CodeGenerator(uri)
      return generator.counter == nil ? try generator.code(at: time) : nil
    }
    if let code { return code }
    guard counting else { throw .readOnly(reason: "the code of a counter is given out once, and counted") }
    return try countedCode(of: item, permit)
  }

  private nonisolated func countedCode(of item: Item, _ permit: Permit?) throws(StoreError) -> OneTimeCode {
    var code: OneTimeCode?
    try updateOtpauth(of: item, forCode: permit) { (uri) throws(StoreError) in
      let generator = try CodeGenerator(uri)
      guard let counter = generator.counter else { throw .interrupted }
      code = OneTimeCode(digits: try generator.code(counter: counter), moment: .counter(counter))
      uri = try generator.counted(uri)
    }
    guard let code else { throw .interrupted }
    return code
  }
}
