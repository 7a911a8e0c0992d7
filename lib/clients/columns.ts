import { ClientSchema } from '../../schemas/client.ts'
import { paramError } from '../errors.ts'
import { quote } from '../lists/sort.ts'

/** The fields of a client that a list can select, in the order of the CSV. Fields that the CSV omits by default come last. */
const FIELDS = Object.keys(ClientSchema.properties)

/**
 * Parses a `fields` parameter of a client list.
 * @param text comma-separated, as the caller wrote it
 * @returns the selected fields in the order of FIELDS, always with `clientId`; undefined for an absent or empty text
 * @throws ErrParam for an unknown field
 */
export function parseClientFields (text: string | undefined): string[] | undefined {
  if (!text) return undefined
  const names = new Set(text.split(','))
  for (const name of names) {
    if (!FIELDS.includes(name)) throw paramError('fields', `unknown field ${quote(name)}, expected some of ${FIELDS.join(', ')}`)
  }
  return FIELDS.filter((field) => field === 'clientId' || names.has(field))
}
