import { type ClientView, showClientItemTo } from './clients/show-client.ts'
import { type SecretBox, createSecretBox } from './crypto/secrets.ts'
import { showEvent } from './events/feed.ts'
import type { EventRecord } from './events/types.ts'
import type { ClientRecord } from './records/client.ts'
import type { UserRecord } from './records/user.ts'
import type { Renderer, StoreOptions } from './store/port.ts'
import { showItemOf } from './users/show-user.ts'

interface RendererData {
  /** Decrypt client secrets. */
  keys: SecretBox['keys']
}

/** The renderers of lists, for the options of a store. */
export function registerRenderers (keys: SecretBox['keys']): StoreOptions['renderers'] {
  return { module: import.meta.url, data: { keys } satisfies RendererData }
}

/** Called by a store that loads this module, see StoreOptions.renderers. */
export function createRenderers ({ keys: [first, ...others] }: RendererData) {
  const { open } = createSecretBox(first, ...others)
  return {
    clients: (view: ClientView): Renderer<ClientRecord> => {
      const show = showClientItemTo(view, open)
      return (record) => JSON.stringify(show(record))
    },
    events: ({ generation }: { generation: string }): Renderer<EventRecord> => (record) => JSON.stringify(showEvent(record, generation)),
    users: ({ fields }: { fields: string | undefined }): Renderer<UserRecord> => {
      const show = showItemOf(fields)
      return (record) => JSON.stringify(show(record))
    }
  }
}
