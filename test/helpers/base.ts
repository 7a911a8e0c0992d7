import type { Base } from '../../lib/base.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { createSilentRecorder } from './events.ts'

interface BaseParts extends Partial<Base> {
  store: Base['store']
  /** Takes the failures of all work that no caller waits for. By default, one fails the test. */
  onError?: (error: unknown) => void
}

/** What a room is opened with: by default the time of day, another key for each, and a recorder that records nothing. */
export function createBase ({ store, onError = (error) => { throw error }, ...parts }: BaseParts): Base {
  return {
    store,
    now: Date.now,
    box: createSecretBox(generateSecretKey()),
    recorder: createSilentRecorder(store),
    roles: DEFAULT_ROLE_NAMES,
    report: () => onError,
    ...parts
  }
}
