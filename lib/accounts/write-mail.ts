import type { Draft } from '../mail/delivery.ts'
import type { MailLook } from '../mail/look.ts'
import { type MailKind, composeMail } from '../mail/compose.ts'
import type { Languages } from '../pages/texts/language.ts'
import { type Place, describeDevice } from '../place.ts'

export interface WriterParts {
  service: () => string
  getMailLook: () => MailLook
  getLanguages: () => Languages
}

interface Written {
  to: string
  /** A language as it is stored, or was asked for. */
  language: unknown
  link?: string | undefined
  values?: Record<string, string>
  /** ISO 8601. */
  time?: string | undefined
  place?: Place | undefined
}

const showTime = (timestamp: string, language: string): string =>
  `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23', timeZone: 'UTC' }).format(new Date(timestamp))} UTC`

/** Creates the function that writes the text of a mail, in a language of this process. */
export function createWriter ({ service, getMailLook, getLanguages }: WriterParts) {
  return (kind: MailKind, { to, language: stored, link, values, time, place }: Written): NonNullable<Draft> => {
    const languages = getLanguages()
    const language = languages.check(stored)
    const about = { ...values, ...(time !== undefined && { time: showTime(time, language) }), ...(place !== undefined && { place: describeDevice(place) || '?' }) }
    return composeMail(kind, { to, link, language, languages, look: getMailLook(), values: { ...about, service: service() } })
  }
}

export type WriteMail = ReturnType<typeof createWriter>
