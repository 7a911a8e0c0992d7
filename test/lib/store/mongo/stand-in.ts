type Raw = { _id: string } & Record<string, unknown>

interface Statement {
  ids: string[]
  /** What it read, once it has. */
  read: unknown[] | null
  run: () => unknown[]
  resolve: (found: unknown[]) => void
  reject: (error: Error) => void
}

/** A stand-in for a server and the driver: it reads and answers look-ups and makes writes when the test says so. */
export class ServerStandIn {
  readonly #collections = new Map<string, Map<string, Raw>>()
  readonly #ids: string[][] = []
  #open: Statement[] = []

  /** What is stored, by id. */
  collection (name: string): Map<string, Raw> {
    let documents = this.#collections.get(name)
    if (documents === undefined) this.#collections.set(name, documents = new Map())
    return documents
  }

  /** The ids that statements asked for, in the order they were sent. */
  ids (): string[][] {
    return this.#ids
  }

  /** The statements that are under way read what is stored now, and are answered later. */
  read (): void {
    for (const statement of this.#open) statement.read ??= statement.run()
  }

  /** Answers the oldest statements, with what they read by now. */
  answer (count = Infinity): void {
    this.read()
    for (const statement of this.#open.splice(0, count)) statement.resolve(statement.read!)
  }

  fail (error: Error): void {
    for (const statement of this.#open.splice(0)) statement.reject(error)
  }

  /** The driver's collection, as far as look-ups use it. */
  native (name: string) {
    return {
      aggregate: ([{ $match }, , ...lookups]: [{ $match: { _id: string | { $in: string[] } } }, unknown, ...{ $lookup: { from: string, localField: string, as: string } }[]]) => ({
        toArray: () => {
          const ids = typeof $match._id === 'string' ? [$match._id] : $match._id.$in
          const run = () => ids.flatMap((id) => {
            const document = this.collection(name).get(id)
            if (document === undefined) return []
            return [Object.fromEntries([['document', document], ...lookups.map(({ $lookup: { from, localField, as } }) => {
              const found = this.collection(from).get(document[localField.replace('document.', '')] as string)
              return [as, found === undefined ? [] : [found]]
            })])]
          })
          this.#ids.push(ids)
          return new Promise<unknown[]>((resolve, reject) => { this.#open.push({ ids, read: null, run, resolve, reject }) })
        }
      })
    }
  }
}
