/**
 * Reads a stream of bytes until its beginning is long enough, or until its end.
 * @returns the beginning, and the stream with it, from any byte of it on
 */
export async function peek<T extends Uint8Array> (
  pieces: AsyncIterable<T>, isEnough: (first: Buffer) => boolean
): Promise<{ first: Buffer, readFrom: (start: number) => AsyncGenerator<Buffer | T> }> {
  const rest = pieces[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  while (!isEnough(first)) {
    const { done, value } = await rest.next()
    if (done === true) break
    first = Buffer.concat([first, value])
  }
  async function * readFrom (start: number): AsyncGenerator<Buffer | T> {
    if (start < first.length) yield first.subarray(start)
    yield * { [Symbol.asyncIterator]: () => rest }
  }
  return { first, readFrom }
}
