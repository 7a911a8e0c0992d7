/** What an engine says of a database, apart from its documents. */
export interface EngineReport {
  /** Damages of the file. */
  broken: string[]
  /** Tables or collections that are declared, and not there. */
  missing: string[]
  /** Tables or collections of the database that are not declared. */
  unknown: string[]
  /** Of the engine. */
  version: string
  /** Bytes and numbers of pages, by the engine's names. */
  sizes: Record<string, number>
}
