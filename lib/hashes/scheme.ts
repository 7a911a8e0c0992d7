/** A password hash that another program made. */
export interface ForeignHash {
  /** Estimated milliseconds of one verification, by the parameters of the hash. */
  work: number
  verify (password: string): boolean
}

/** How one kind of stored hash is read. The stored form is a text that begins with `$`. */
export interface Scheme {
  /** Its name in reports and in the shares of decoys. */
  name: string
  /** Whether guesses are so fast that an import needs the operator's consent. */
  weak?: boolean
  /** The groups are the parameters. It has the flag `d`, for their positions. */
  pattern: RegExp
  /**
   * @param groups what `pattern` matched
   * @throws HashError when a parameter is out of bounds
   */
  read (groups: Record<string, string>): ForeignHash
}
