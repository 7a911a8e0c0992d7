import type { KeyObject } from 'node:crypto'
import { type ClientView, showClientItemTo } from './clients/show-client.ts'
import { createSecretBox } from './crypto/secrets.ts'
import type { ClientRecord, UserRecord } from './records.ts'
import type { Renderer, StoreOptions } from './store/port.ts'
import { showItemOf } from './users/show-user.ts'

interface RendererData {
  /** Opens client secrets. */
  key: KeyObject
}

/** The renderers of lists, for the options of a store. */
export function registerRenderers (key: KeyObject): StoreOptions['renderers'] {
  return { module: import.meta.url, data: { key } satisfies RendererData }
}

/** What a store loads, see StoreOptions.renderers. */
export function createRenderers ({ key }: RendererData) {
  const { open } = createSecretBox(key)
  return {
    clients: (view: ClientView): Renderer<ClientRecord> => {
      const show = showClientItemTo(view, open)
      return (record) => JSON.stringify(show(record))
    },
    users: ({ fields }: { fields: string | undefined }): Renderer<UserRecord> => {
      const show = showItemOf(fields)
      return (record) => JSON.stringify(show(record))
    }
  }
}

type Factories = ReturnType<typeof createRenderers>

/** A renderer with its options. */
export type ListRenderer = { [N in keyof Factories]: { renderer: N, options: Parameters<Factories[N]>[0] } }[keyof Factories]
