import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { de as germanMails } from '../lib/mail/texts/de.ts'
import { en as englishMails } from '../lib/mail/texts/en.ts'
import { de } from '../lib/pages/texts/de.ts'
import { en } from '../lib/pages/texts/en.ts'
import { BUILT_IN } from '../lib/pages/texts/language.ts'
import { value } from './args.ts'
import type { Commands } from './command.ts'

const TEXTS: Record<string, { pages: object, mails: object }> = {
  en: { pages: en, mails: englishMails },
  de: { pages: de, mails: germanMails }
}

export const textCommands: Commands = {
  'texts export': {
    summary: 'Export the texts of pages and mails as JSON, for the folder in IDENTITY_TEXTS.',
    flags: {
      language: value('TAG', `One of ${BUILT_IN.join(', ')}. Absent: ${BUILT_IN[0]}.`),
      file: value('FILE', 'A new file, with its folder. Absent: stdout.')
    },
    async runAlone ({ args, stdout }) {
      const language = args.optional('language') ?? 'en'
      const texts = TEXTS[language]
      if (texts === undefined) {
        throw new Error(`--language: must be one of ${BUILT_IN.join(', ')}; translate one of these into another ` +
        'language')
      }
      const text = `${JSON.stringify(texts, null, 2)}\n`
      const file = args.optional('file')
      if (file === undefined) {
        stdout.write(text)
        return
      }
      mkdirSync(dirname(file), { recursive: true })
      // Never replaces texts that somebody has changed.
      writeFileSync(file, text, { flag: 'wx' })
    }
  }
}
