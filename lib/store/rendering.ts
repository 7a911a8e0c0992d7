import type { Document, Renderer, Rendering } from './port.ts'

/** Makes the renderer of one list. */
export async function createRendererOf<T extends Document> ({ module, options }: Rendering): Promise<Renderer<T>> {
  const { createRenderer } = await import(module) as { createRenderer: (options: object) => Renderer<T> }
  return createRenderer(options)
}

/** Renders batches here, on this thread, one at a time. */
export async function * renderBatches<T extends Document, B> (
  batches: AsyncIterable<B>, rendering: Rendering, write: (renderer: Renderer<T>, batch: B) => string
): AsyncGenerator<string, void, undefined> {
  const renderer = await createRendererOf<T>(rendering)
  for await (const batch of batches) yield write(renderer, batch)
}
