/** What a part of a document has: one record, or a list that is read while it is written. */
export type Content = { record: object } | { batches: AsyncIterable<object[]> }

/** Writes the parts as one JSON document, a record per line. */
export async function * writeDocument (head: object, parts: readonly (readonly [name: string, content: Content])[]): AsyncGenerator<string> {
  yield JSON.stringify(head).slice(0, -1)
  for (const [name, content] of parts) {
    yield `,\n${JSON.stringify(name)}:`
    if ('record' in content) {
      yield JSON.stringify(content.record)
      continue
    }
    let before = '[\n'
    for await (const batch of content.batches) {
      if (batch.length === 0) continue
      yield before + batch.map((record) => JSON.stringify(record)).join(',\n')
      before = ',\n'
    }
    yield before === '[\n' ? '[]' : '\n]'
  }
  yield '\n}\n'
}
