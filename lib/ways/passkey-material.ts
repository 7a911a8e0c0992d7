import { hash } from 'node:crypto'
import type { Device } from '../device.ts'
import type { CredentialRecord } from '../way.ts'

/** What is kept of a passkey. Of these only the counter, and whether it is backed up, change. */
export type PasskeyMaterial = {
  /** Base64url. */
  credential_id: string
  /** In COSE (RFC 9052), base64url. */
  public_key: string
  /** The counter of the authenticator at the last use. Most passkeys have none: 0. */
  counter: number
  /** As the browser sent them. */
  transports: string[]
  backup_eligible: boolean
  backed_up: boolean
  /** The model of the authenticator. */
  aaguid: string
  /** How often the counter has not gone up: a signal that the key was copied, and no lock, because synced passkeys may do that. Absent: never. */
  counter_fell?: number
  /** Of the last use that was recorded. */
  place?: Device
}

export const readMaterial = ({ material }: Pick<CredentialRecord, 'material'>): PasskeyMaterial => material as unknown as PasskeyMaterial

/** The handle by which authenticators know a user. It says nothing about them, and is the same for all their passkeys. */
export const toUserHandle = (user_id: string): string => hash('sha256', user_id, 'base64url')

/** The material after a use. Null when nothing has changed. */
export function afterUse (material: PasskeyMaterial, { counter, backed_up }: Pick<PasskeyMaterial, 'counter' | 'backed_up'>): PasskeyMaterial | null {
  const hasFallen = material.counter > 0 && counter <= material.counter
  if (!hasFallen && counter === material.counter && backed_up === material.backed_up) return null
  return { ...material, backed_up, ...(hasFallen ? { counter_fell: (material.counter_fell ?? 0) + 1 } : { counter }) }
}
